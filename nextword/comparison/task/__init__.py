"""Models of any task side by side, known through `core.task.Task` alone: examples, measures, predictions."""
