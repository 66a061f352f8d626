"""One lock, one truth: the verbs are in `protocol`, the databases behind them in modules of their own."""
