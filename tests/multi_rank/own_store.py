"""A store whose server a test can kill or stop: a process of its own, forked before there is any thread.

`STORE_OF_ITS_OWN` is the beginning of a script of ranks; it gives the pid of the server (of rank 0) and a client.
"""

STORE_OF_ITS_OWN = """
def store_of_its_own():
    told, tell_port = os.pipe()
    server = os.fork() if RANK == 0 else None
    if server == 0:
        store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        os.write(tell_port, str(store.port).encode())
        while True:
            signal.pause()
    launcher = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), is_master=False)
    if RANK == 0:
        launcher.set("port", os.read(told, 16).decode())
    return server, dist.TCPStore("127.0.0.1", int(launcher.get("port")), is_master=False)
"""
