"""Your minutes: the clock, a few trial steps, and a model that fits."""
