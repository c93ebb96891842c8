"""What tests share: servers as subprocesses, a raw client, the build under test."""
