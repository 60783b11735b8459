"""How every command starts and ends: settings, output files, the terminal."""
