"""Counting within a memory limit: buckets on disk, worker processes, Spark."""
