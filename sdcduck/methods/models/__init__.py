"""What a trained model tells about the records that it was fitted to, and how good it is: arrays in, arrays out."""
