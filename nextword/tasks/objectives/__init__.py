"""What is made small: losses, what the model reads meanwhile, and how far gradients go back."""
