"""Calls made by chance from what COMMAND DOCS says: two servers compared, or broken bytes."""
