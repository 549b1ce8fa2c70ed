"""What all subpackages use: checks, files, lazy imports, precision, progress, random numbers, records, registries."""
