"""Distributed training: ranks, DDP, FSDP, sharded checkpoints."""
