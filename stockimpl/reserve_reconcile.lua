-- Ends late reservations and replies how many.
--
-- ARGV[1]  how many at most

return reconcile(ARGV[1])
