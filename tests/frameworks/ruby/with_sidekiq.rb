# Jobs of Sidekiq. `produce N` adds some, every fourth of them a moment later; `work` runs a worker,
# which loads this file, too.

require "sidekiq"

REDIS = { url: "redis://127.0.0.1:#{ENV.fetch("HEADRACE_PORT")}/0" }
Sidekiq.configure_client { |config| config.redis = REDIS }
Sidekiq.configure_server do |config|
  config.redis = REDIS
  config.options[:poll_interval_average] = 0.5 # of jobs that are planned
end

class Job
  include Sidekiq::Worker

  def perform(number)
    tell("begun #{number}")
    sleep 1 while ENV["HEADRACE_HOLDS"] == "1"
    tell("done #{number}")
  end

  # Append a line for the test, whole.
  def tell(line)
    File.write(ENV.fetch("HEADRACE_TOLD"), "#{Process.pid} #{line}\n", mode: "a")
  end
end

if $PROGRAM_NAME == __FILE__
  case ARGV[0]
  when "produce"
    Integer(ARGV[1]).times do |number|
      number % 4 == 3 ? Job.perform_in(0.5, number) : Job.perform_async(number)
    end
  when "work"
    exec "sidekiq", "-r", __FILE__, "-c", "1", "-t", "1"
  end
end
