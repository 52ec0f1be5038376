"""Pictures and pages as text, for whoever has numbers to show: SVG and HTML, no script, no network.

    lines, scatter, bars                    plots with axes, units and legends                     svg.py
    heat                                    numbers as the strength of a colour, in rows and columns   heat.py
    coloured                                a text in any script on a coloured ground            coloured.py
    plane                                   complex numbers and the unit circle                     plane.py
    tree                                    a search, from left to right                             tree.py
    Page, Table                             one HTML file                                           page.py
    standalone, save                        pictures as one .svg or .png file                 standalone.py

Everything is drawn with the reader's own fonts, and follows light and dark screens.
"""
