"""Three regions that write to one stream, while every plug is pulled. Start with README.md."""
