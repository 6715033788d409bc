
return acquire(lock, tombstone, queue, waiters, numbers, ARGV[1], mine, ARGV[4], nothing_there, drawn)
