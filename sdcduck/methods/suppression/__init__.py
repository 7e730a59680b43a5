"""Cell suppression of linked tables by exact elimination, its audit, decimals and stencil. Arrays in, arrays out."""
