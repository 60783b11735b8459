"""Published MCANs, of mcan-vqa and of openvqa, as models and checkpoints of this project."""
