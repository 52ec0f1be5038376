"""The process and its machine: processor, threads, allocator, launch; nothing here loads torch by itself."""
