"""Where an element lives: layouts as digits, with no TVM."""
