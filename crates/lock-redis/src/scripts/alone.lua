
return acquire(lock, queue, ARGV[1], mine, terms, nothing_there, drawn)
