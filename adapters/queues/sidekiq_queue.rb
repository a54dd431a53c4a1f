# Sidekiq for the test of peers: produce N, work, or left. See peers_test.go.
require 'json'
require 'sidekiq'

Sidekiq.configure_client { |c| c.redis = { url: ENV['REDIS_URL'] } }
Sidekiq.configure_server { |c| c.redis = { url: ENV['REDIS_URL'] } }

def note(event, task)
  line = JSON.generate({ t: Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond), worker: Process.pid, event: event, task: task })
  File.open(ENV['LOG'], 'a') { |f| f.syswrite(line + "\n") }
end

class Work
  include Sidekiq::Worker
  sidekiq_options queue: 'peers'

  def perform(task)
    note('start', task)
    sleep 0.01
    if ENV['DIE'] && task.to_i % 10 == 3
      begin
        File.open(ENV['LOG'] + '.died' + task, File::CREAT | File::EXCL).close
        sleep 0.5 # in the midst of the task, as in record.py
        Process.kill(:KILL, Process.pid)
      rescue Errno::EEXIST
      end
    end
    note('done', task)
  end
end

if __FILE__ == $PROGRAM_NAME
  case ARGV[0]
  when 'produce'
    ARGV[1].to_i.times { |task| Work.perform_async(task.to_s) }
  when 'work'
    exec('sidekiq', '-r', File.expand_path(__FILE__), '-q', 'peers', '-c', '1', out: File::NULL)
  else
    require 'sidekiq/api'
    (Sidekiq::Queue.new('peers').to_a + Sidekiq::RetrySet.new.to_a + Sidekiq::DeadSet.new.to_a).each { |job| puts job.args[0] }
  end
end
