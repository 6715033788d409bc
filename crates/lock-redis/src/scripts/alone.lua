
return acquire(2, 0, nothing_there, drawn)
