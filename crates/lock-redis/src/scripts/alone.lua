
return acquire(lock, tombstone, queue, ARGV[1], mine, ARGV[4], nothing_there, drawn)
