
return acquire_shared(lock, tombstone, queue, waiters, numbers, ARGV[1], mine, ARGV[3], limit, drawn, ARGV[5] == 'barging')
