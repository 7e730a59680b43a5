"""What programs that ask a gateway have in common: its address, and what it said when it refused."""
