
return acquire_shared(lock, queue, ARGV[1], mine, terms, limit, drawn, ARGV[7] == 'barging')
