"""A synthetic OpenLORIS-Object: clips of the 121 objects, rendered with MuJoCo in layout A.

=============  ====================================================================================
``meshes``     triangle meshes from formulas
``materials``  meshes with colours and procedural textures
``objects/``   the models of the 121 objects, a maker for each category, and the occluders
``shadows``    soft shadows as textures on the ground
``scene``      the MuJoCo model of one object: room, lights, distractors, occluders
``camera``     camera poses and projection
``renderer``   RGB, depth and segmentation of a scene, off screen
``sensor``     exposure, tint and noise at the three levels of illumination
``occlusion``  where an occluder must stand to hide a wanted fraction of the object
``factors``    the levels of the four factors, and the test whether a frame has them
``clips``      the frames of one segment: camera path, arrangement, measurements
``dataset``    clips of many objects written to disk, in parallel and resumable
``gallery``    contact sheets
=============  ====================================================================================

Strings that are passed to ``rng_for`` are addresses of random streams: changing one changes frames,
and then ``dataset.VERSION`` must change too.
"""
