"""Files, disks, downloads and threads."""
