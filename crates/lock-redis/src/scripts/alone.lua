
return acquire(lock, tombstone, queue, waiters, numbers, ARGV[1], mine, ARGV[3], nothing_there, drawn)
