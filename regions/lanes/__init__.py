"""A stream that several regions write: its lanes, merged when read, and what is removed of them."""
