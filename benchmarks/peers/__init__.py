"""What we are measured against: training loops as their authors write them, each at its stock settings."""
