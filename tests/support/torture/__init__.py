"""Campaigns that end servers in every way under load, and compare what is there afterwards."""
