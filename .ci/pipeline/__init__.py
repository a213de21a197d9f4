"""What `.ci/run` and `.ci/all` are made of. Only Python's standard library is used."""
