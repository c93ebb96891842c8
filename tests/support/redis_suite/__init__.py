"""Redis's own tests, run against our server and a real one: which does only the real one pass?"""
