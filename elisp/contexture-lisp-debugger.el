;;; contexture-lisp-debugger.el --- Errors in a Lisp image  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The error in a debugger with its backtrace, what an inspector shows,
;; and the notes of the compiler.
;;
;; Asks the image for the frames, then for their places, then for the
;; variables of the frames whose source Emacs finds; the other frames are
;; mostly the Lisp's own and would cost tokens.  Short definitions that
;; contain a frame become part of the text.

;;; Code:

(require 'seq)
(require 'contexture-lisp)
(require 'contexture-lisp-repl)
(eval-when-compile (require 'subr-x))

(autoload 'contexture-add-compilation "contexture-sources" nil t)
(autoload 'contexture-sources--buffer-metadata "contexture-sources")
(autoload 'contexture-sources--params "contexture-sources")

(defconst contexture-lisp--frames 20
  "Number of frames of a backtrace to add by default.")

(defconst contexture-lisp--definitions 5
  "Maximum number of definitions to add with a backtrace.")

(defconst contexture-lisp--longest-definition 60
  "Maximum length in lines of a definition added with a backtrace.")

(defconst contexture-lisp--longest-value 200
  "Maximum number of characters of a variable's value.")

(defconst contexture-lisp--client-frame
  "\\`(\\(?:([^)\n]* :in \\)?\\(?:swank\\|slynk\\)[^ :]*:"
  "Regexp for a frame that belongs to SLIME or SLY itself.")

;;;; Errors

(defun contexture-lisp--add-error (client frames)
  "Add the error of a debugger of CLIENT, with FRAMES frames."
  (let* ((frames (if (natnump frames) frames contexture-lisp--frames))
         (debugger (contexture-lisp--debugger client))
         (facts (with-current-buffer debugger
                  (contexture-lisp--ask client 'debugger)))
         (ask (lambda (form then)
                (contexture-lisp--call
                 client (plist-get facts :connection) (plist-get facts :thread)
                 form then))))
    (funcall
     ask (contexture-lisp--form client "backtrace" 0 (1+ frames))
     (lambda (backtrace)
       (let* ((all (contexture-lisp--prune backtrace))
              (kept (seq-take all frames))
              (more (nthcdr frames all)))
         (funcall
          ask (contexture-lisp--for-each client "frame-source-location" kept)
          (lambda (locations)
            (let ((kept (contexture-lisp--locate client kept locations)))
              (funcall
               ask (contexture-lisp--for-each
                    client "frame-locals-and-catch-tags"
                    (cl-remove-if-not (lambda (frame) (plist-get frame :file)) kept))
               (lambda (locals)
                 (contexture-lisp--send-error
                  client facts (contexture-lisp--with-locals kept locals)
                  more)))))))))))

(defun contexture-lisp--debugger (client)
  "Return the debugger of CLIENT: this buffer, or the only one that is open."
  (let* ((mode (contexture-lisp--client-debugger-mode client))
         (all (cl-remove-if-not
               (lambda (buffer)
                 (with-current-buffer buffer
                   (and (derived-mode-p mode)
                        (when-let* ((connection
                                     (contexture-lisp--ask client 'buffer-connection)))
                          (contexture-lisp--real-p client connection)))))
               (buffer-list))))
    (cond ((memq (current-buffer) all) (current-buffer))
          ((null all) (contexture--user-error "No debugger of %s is open"
                                  (contexture-lisp--client-name client)))
          ((cdr all) (user-error "Several debuggers are open; go to one of them"))
          (t (car all)))))

(defun contexture-lisp--prune (backtrace)
  "Return BACKTRACE as plists, up to the first frame of the client's own code."
  (let ((frames (mapcar (lambda (frame)
                          (list :number (nth 0 frame)
                                :text (string-trim (nth 1 frame))))
                        backtrace))
        (case-fold-search t))
    (cons (car frames)
          (seq-take-while
           (lambda (frame)
             (not (string-match-p contexture-lisp--client-frame (plist-get frame :text))))
           (cdr frames)))))

(defun contexture-lisp--for-each (client function frames)
  "Return a form that lists the values of CLIENT's FUNCTION for FRAMES."
  `(cl:list ,@(mapcar (lambda (frame)
                        (contexture-lisp--form client function
                                               (plist-get frame :number)))
                      frames)))

(defun contexture-lisp--locate (client frames locations)
  "Return FRAMES with the `:file', `:line' and `:source' of their LOCATIONS.
LOCATIONS are in the form of CLIENT."
  (contexture-lisp--with-visits
    (cl-loop for frame in frames
             for location in locations
             collect (append frame (contexture-lisp--at-location
                                    client location #'contexture-lisp--place-here)))))

(defun contexture-lisp--place-here ()
  "Return the place of point, and the definition around it, as a plist."
  (let ((here (line-number-at-pos nil t))
        (bounds (contexture--defun-bounds)))
    `(,@(contexture--plist
         :file (or (buffer-file-name (contexture--base-buffer)) (buffer-name))
         :line here
         :source (string-trim (buffer-substring-no-properties
                               (line-beginning-position) (line-end-position))))
      ,@(when bounds
          (list :definition
                (cons (line-number-at-pos (car bounds) t)
                      (string-trim-right
                       (buffer-substring-no-properties (car bounds) (cdr bounds)))))))))

(defun contexture-lisp--with-locals (frames locals)
  "Return FRAMES, with the variables from LOCALS in frames with a file.
Each element of LOCALS is a list of variables and a list of tags; the tags
are ignored."
  (cl-loop for frame in frames
           collect (if-let* ((variables (and (plist-get frame :file)
                                             (car (pop locals)))))
                       (append frame (list :locals (mapcar #'contexture-lisp--variable
                                                           variables)))
                     frame)))

(defun contexture-lisp--variable (variable)
  "Return VARIABLE, a plist from the image, as a line of text."
  (format "%s = %s" (plist-get variable :name)
          (truncate-string-to-width (plist-get variable :value)
                                    contexture-lisp--longest-value nil nil t)))

(defun contexture-lisp--send-error (client facts frames more)
  "Add the error with FACTS and FRAMES from CLIENT.
MORE non-nil means that there are more frames."
  (let ((place (cl-find-if (lambda (frame) (plist-get frame :file)) frames))
        (definitions (contexture-lisp--definitions-text frames))
        (connection (plist-get facts :connection)))
    (contexture--add
     (contexture-sources--params
      :error :debugger (concat (contexture-lisp--error-text facts frames more)
                               definitions)
      (append
       (contexture--plist
        :filename (let ((file (plist-get place :file)))
                    (and file (file-name-absolute-p file) file))
        :start-line (plist-get place :line)
        :end-line (plist-get place :line)
        :condition (plist-get facts :message)
        :condition-type (plist-get facts :type)
        :restarts (plist-get facts :restarts)
        :frames (mapcar #'contexture-lisp--frame-facts frames)
        :lisp (contexture-lisp--implementation client connection)
        :buffer (plist-get facts :buffer))
       '(:language "text"))))))

(defun contexture-lisp--error-text (facts frames more)
  "Return the error with FACTS, a plist, and FRAMES as readable text.
MORE non-nil means that there are more frames."
  (concat
   (plist-get facts :message) "\n"
   "  [" (plist-get facts :type) "]\n\nRestarts:\n"
   (cl-loop for restart in (plist-get facts :restarts)
            for number from 0
            concat (format "  %d: %s\n" number restart))
   "\nBacktrace:\n"
   (mapconcat #'contexture-lisp--frame-text frames "")
   (and more "  and more\n")))

(defun contexture-lisp--frame-text (frame)
  "Return FRAME, a plist, with its source and variables, as text."
  (concat
   (format "  %d: %s\n" (plist-get frame :number) (plist-get frame :text))
   (when-let* ((file (plist-get frame :file)))
     (format "       at %s:%d: %s\n" (abbreviate-file-name file)
             (plist-get frame :line) (plist-get frame :source)))
   (cl-loop for variable in (plist-get frame :locals)
            concat (format "       %s\n" variable))))

(defun contexture-lisp--frame-facts (frame)
  "Return FRAME, a plist, without the keys that only its text needs."
  (cl-loop for (key value) on frame by #'cddr
           unless (eq key :definition) nconc (list key value)))

(defun contexture-lisp--definitions-text (frames)
  "Return the definitions that FRAMES are in, the innermost first, as text.
Each definition occurs once; long ones are left out."
  (let ((definitions
         (seq-take
          (seq-uniq
           (cl-loop for frame in frames
                    for (line . text) = (plist-get frame :definition)
                    when (and text (<= (length (split-string text "\n"))
                                       contexture-lisp--longest-definition))
                    collect (format "%s:%d\n%s\n"
                                    (abbreviate-file-name (plist-get frame :file))
                                    line text)))
          contexture-lisp--definitions)))
    (if definitions
        (concat "\nSource:\n" (string-join definitions "\n"))
      "")))

;;;; Inspectors

(defun contexture-lisp--add-inspector (client)
  "Add the contents of the inspector of CLIENT."
  (let* ((mode (contexture-lisp--client-inspector-mode client))
         (buffer (if (derived-mode-p mode)
                     (current-buffer)
                   (or (cl-find mode (buffer-list)
                                :key (lambda (buffer)
                                       (buffer-local-value 'major-mode buffer)))
                       (contexture--user-error "%s has no inspector open"
                                   (contexture-lisp--client-name client))))))
    (contexture--add
     (with-current-buffer buffer
       (contexture-sources--params
        :text :inspector
        (concat (string-trim (buffer-string)) "\n")
        (append (contexture-sources--buffer-metadata :project :buffer :mode)
                '(:language "text")))))))

;;;; Notes of the compiler

(defun contexture-lisp--add-note (client)
  "Add the notes that the compiler of CLIENT made at point or on its line."
  (if (derived-mode-p 'compilation-mode)
      (contexture-add-compilation)
    (let ((overlays (or (contexture-lisp--notes client (point) (1+ (point)))
                        (contexture-lisp--notes client (line-beginning-position)
                                                (line-end-position))
                        (user-error "The compiler has no note on this line"))))
      (contexture--add
       (contexture-sources--params
        :error :diagnostic
        (mapconcat (apply-partially #'contexture-lisp--note-text client) overlays "")
        (append (contexture-lisp--note-lines overlays)
                (contexture-sources--buffer-metadata
                 :filename :project :buffer :mode :modified)
                '(:language "text")))))))

(defun contexture-lisp--notes (client beg end)
  "Return the overlays of CLIENT's notes between BEG and END, in order.
If none begins there, return only the innermost one that begins before."
  (let* ((property (contexture-lisp--client-note-property client))
         (notes (sort (cl-remove-if-not
                       (lambda (overlay) (overlay-get overlay property))
                       (overlays-in beg end))
                      (lambda (a b) (> (overlay-start a) (overlay-start b)))))
         (inside (cl-remove-if (lambda (overlay) (< (overlay-start overlay) beg)) notes)))
    (nreverse (or inside (and notes (list (car notes)))))))

(defun contexture-lisp--note-lines (overlays)
  "Return the lines where OVERLAYS begin, as a plist."
  (let ((lines (mapcar (lambda (overlay) (line-number-at-pos (overlay-start overlay) t))
                       overlays)))
    (list :start-line (apply #'min lines) :end-line (apply #'max lines))))

(defun contexture-lisp--note-text (client overlay)
  "Return the text of the note of CLIENT at OVERLAY, with its line."
  (let ((note (overlay-get overlay (contexture-lisp--client-note-property client)))
        (beg (overlay-start overlay)))
    (format "line %d: %s: %s\n    %s\n%s"
            (line-number-at-pos beg t)
            (contexture--name (plist-get note :severity))
            (string-trim (plist-get note :message))
            (save-excursion
              (goto-char beg)
              (string-trim (buffer-substring-no-properties (line-beginning-position)
                                                           (line-end-position))))
            (if-let* ((context (plist-get note :source-context)))
                (concat (string-trim-right context) "\n")
              ""))))

(provide 'contexture-lisp-debugger)
;;; contexture-lisp-debugger.el ends here
