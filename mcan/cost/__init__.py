"""What a training step and an evaluation take: operations, bytes and memory."""
