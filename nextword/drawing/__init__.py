"""Plots and pages as text, for any numbers: SVG and HTML, no scripts, no network.

    lines, scatter, bars                    plots with axes, units and legends                     svg.py
    heat                                    numbers as colour intensity, in rows and columns       heat.py
    coloured                                a text in any script, with a coloured background   coloured.py
    plane                                   complex numbers and the unit circle                     plane.py
    tree                                    a search tree, left to right                             tree.py
    Page, Table                             one HTML file                                           page.py
    standalone, save                        pictures as one .svg or .png file                 standalone.py

Everything uses the reader's own fonts and follows light and dark mode.
"""
