-- Ends reservations that are past their deadline. Returns how many.
--
-- ARGV[1]  how many at most

return reconcile(ARGV[1])
