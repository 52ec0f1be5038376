"""The lectures' experiments: each file states a slide's claim, measures it, draws it, says if it held."""
