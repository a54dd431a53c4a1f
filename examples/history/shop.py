"""A shop that sells 100 pieces to 16 clients: python3 shop.py HISTORY [flawed]"""
import sys
import threading
import time

from history import History, Refused

STOCK, CLIENTS, ORDERS = 100, 16, 10
left, mutex = STOCK, threading.Lock()


def sell():
    """Sells a piece and returns how many are left. It pauses where a shop waits for its database."""
    global left
    seen = left
    if seen < 1:
        raise Refused("sold-out")
    time.sleep(0.0005)
    left = seen - 1
    return left


def sell_alone():
    with mutex:
        return sell()


def client(number, buy, history):
    for n in range(ORDERS):
        history.call(number, "buy", f"order-{number}-{n}", buy)


buy = sell if "flawed" in sys.argv[2:] else sell_alone
with History(sys.argv[1], stock=STOCK) as history:
    threads = [threading.Thread(target=client, args=(n, buy, history)) for n in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
