"""The process and its machine: processor, threads, allocator, launch; importing this does not load torch."""
