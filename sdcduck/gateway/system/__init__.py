"""What clients find when they ask the database about itself: an instance of its own, without any record."""
