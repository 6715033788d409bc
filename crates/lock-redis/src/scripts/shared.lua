
return acquire_shared(lock, tombstone, queue, ARGV[1], mine, ARGV[4], limit, drawn, ARGV[6] == 'barging')
