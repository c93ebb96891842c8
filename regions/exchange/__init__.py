"""Regions: one logical database, written in several servers, that ends the same in all of them."""
