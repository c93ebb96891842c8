"""The part of scripting that is written in Lua."""
