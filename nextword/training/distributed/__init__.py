"""Several processes train one model: ranks, DDP, FSDP, sharded checkpoints."""
