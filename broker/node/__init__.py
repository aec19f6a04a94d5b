"""This node: its log directories, its metadata store, settings that change while it runs."""
