"""The measuring tools, held against the codec and against brokers that lie."""
