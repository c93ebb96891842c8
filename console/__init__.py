"""The console: pages for people who look after streams. A client of the server like any other."""
