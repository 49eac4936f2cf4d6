"""Your own program in a world of virtual time: real members of a real group, one Python process.

async def story(world: World) -> None:
    members = [world.start(me, program, me) for me in "abc"]
    await asyncio.sleep(1)
    world.cut("a", "bc")
    ...

run(story, seed=7)

loop        time, tasks and threads
network     who listens where, and who is cut off from whom
transport   one connection: bytes that keep their order and take their time
process     what can be killed, paused and started again
world       all of it, for a story
judging     whether the order held
"""

from ordercast.testing.judging import check
from ordercast.testing.process import Process
from ordercast.testing.world import World, run

__all__ = ["Process", "World", "check", "run"]
