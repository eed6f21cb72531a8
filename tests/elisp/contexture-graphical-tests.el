;;; contexture-graphical-tests.el --- A graphical Emacs, its fringe, mouse and faces  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Each test starts a graphical Emacs on a display of its own (Xvfb), with
;; a window manager (evilwm).  xdotool presses its keys and buttons, as a
;; user does.  What it shows is asked from its server, and seen in the
;; pixels of the screen.
;;
;; An Emacs without windows skips these tests.  The root that
;; scripts/emacs30 makes has what they need.  If CONTEXTURE_PICTURES names
;; a folder, the screens are kept there, to be looked at.

;;; Code:

(require 'contexture-test-helper)
(require 'llm-ert-model)
(require 'server)

(defconst contexture-graphical-test--programs '("Xvfb" "evilwm" "xdotool" "xwdtopnm" "pnmtopng")
  "Programs that the tests call.")

(defconst contexture-graphical-test--size '(1000 . 900)
  "Width and height of the screen, in pixels.")

(defconst contexture-graphical-test--themes '((light . modus-operandi) (dark . modus-vivendi))
  "The themes in which the screens are looked at.")

;;;; An Emacs on a display

(defun contexture-graphical-test--start (command)
  "Start COMMAND, a list, and return its process."
  (make-process :name (car command) :command command :noquery t :connection-type 'pipe
                :buffer (generate-new-buffer (concat " " (car command)))))

(defun contexture-graphical-test--with (arguments function)
  "Call FUNCTION with the process of a graphical Emacs that got ARGUMENTS.
It has a display, a home folder and a server of Contexture of its own."
  (unless (and (featurep 'x)
               (cl-every #'executable-find contexture-graphical-test--programs))
    (ert-skip "There is no graphical Emacs with Xvfb here; scripts/emacs30 has one"))
  (let* ((home (directory-file-name llm-ert-directory))
         (process-environment
          (append (list (concat "HOME=" home) (concat "XDG_CONFIG_HOME=" home "/config")
                        (concat "XDG_STATE_HOME=" home "/state")
                        (concat "XDG_RUNTIME_DIR=" home)
                        "GDK_BACKEND=x11" "NO_AT_BRIDGE=1" "GSETTINGS_BACKEND=memory")
                  process-environment))
         (screen (contexture-graphical-test--start
                  (list "Xvfb" "-displayfd" "1" "-nolisten" "tcp" "-fbdir" home
                        "-screen" "0" (format "%dx%dx24" (car contexture-graphical-test--size)
                                              (cdr contexture-graphical-test--size)))))
         (processes (list screen)))
    (unwind-protect
        (let ((process-environment
               (cons (concat "DISPLAY=:" (contexture-graphical-test--number screen))
                     process-environment)))
          (push (contexture-graphical-test--start '("evilwm" "-fn" "fixed")) processes)
          (push (contexture-graphical-test--start
                 `(,(expand-file-name invocation-name invocation-directory) "-Q"
                   "--geometry" "80x40+0+0"
                   ,@(cl-mapcan (lambda (folder) (list "-L" folder))
                                (list (file-name-directory (locate-library "contexture"))
                                      (expand-file-name "tests/elisp" contexture-test-root)))
                   ,@arguments))
                processes)
          (funcall function (car processes)))
      (dolist (process processes)
        (let ((buffer (process-buffer process)))
          (delete-process process)
          (kill-buffer buffer))))))

(defun contexture-graphical-test--number (screen)
  "Return the number of the display of SCREEN, a process, as text."
  (with-current-buffer (process-buffer screen)
    ;; The server may complain of the display of the last test before it says its number.
    (llm-ert-wait-for (progn (goto-char (point-min))
                             (re-search-forward "^\\([0-9]+\\)\n" nil t)))
    (match-string 1)))

(defun contexture-graphical-test--init (theme)
  "Write an init file for THEME, as the README has it; return its name."
  (contexture-test-write-init
   "here"
   `((setq contexture-server-command ,contexture-test-binary)
     (load-theme ',theme t)
     (require 'contexture)
     (global-set-key (kbd "C-c x") 'contexture-command-map)
     (contexture-global-mode)
     (blink-cursor-mode -1)
     (server-start))))

(defun contexture-graphical-test--ask (form)
  "Return the value of FORM in the graphical Emacs."
  (let ((server-use-tcp nil)
        (server-socket-dir (directory-file-name llm-ert-directory)))
    (with-timeout (llm-ert-timeout (ert-fail (list "no answer" form)))
      ;; The server has a buffer of its own.
      (server-eval-at "here" `(with-current-buffer (window-buffer) ,form)))))

(defmacro contexture-graphical-test--until (form)
  "Wait until the graphical Emacs returns non-nil for FORM; return the value."
  (declare (debug t))
  `(let (value)
     (llm-ert-wait-for (setq value (contexture-graphical-test--ask ,form)))
     value))

(defun contexture-graphical-test--see (regexp)
  "Wait until a window of the graphical Emacs, or its messages, match REGEXP."
  (contexture-graphical-test--until
   `(cl-some (lambda (buffer)
               (with-current-buffer buffer
                 (save-excursion (goto-char (point-min)) (re-search-forward ,regexp nil t))))
             (cons (messages-buffer) (mapcar #'window-buffer (window-list))))))

;;;; Hands

(defun contexture-graphical-test--xdotool (&rest arguments)
  "Let xdotool do what ARGUMENTS say."
  (unless (eql 0 (apply #'call-process "xdotool" nil nil nil
                        (mapcar (lambda (it) (format "%s" it)) arguments)))
    (ert-fail (cons "xdotool" arguments))))

(defun contexture-graphical-test--press (&rest keys)
  "Press KEYS, as xdotool names them, one after the other."
  (apply #'contexture-graphical-test--xdotool "key" "--delay" 60 keys))

(defun contexture-graphical-test--type (text)
  "Type TEXT."
  (contexture-graphical-test--xdotool "type" "--delay" 30 text))

(defun contexture-graphical-test--click (place &optional button)
  "Click BUTTON, by default the first, at PLACE, a pair of pixels."
  (contexture-graphical-test--xdotool "mousemove" (car place) (cdr place)
                                      "click" (or button 1)))

(defun contexture-graphical-test--place (text)
  "Return the pixels of TEXT, which a window shows, on the screen."
  (pcase-let ((`(,x ,y)
               (contexture-graphical-test--until
                `(cl-some
                  (lambda (window)
                    (with-selected-window window
                      (save-excursion
                        (goto-char (window-start))
                        (when (search-forward ,text (window-end nil t) t)
                          ;; `window-absolute-pixel-position' counts a header line twice.
                          (pcase-let ((`(,x . ,y)
                                       (posn-x-y (posn-at-point (match-beginning 0)))))
                            (cl-mapcar #'+ (window-absolute-body-pixel-edges) (list x y)))))))
                  (window-list)))))
    (cons (+ x 4) (+ y 4))))

;;;; Eyes

(defun contexture-graphical-test--screen (&optional name)
  "Return the pixels of the screen, three bytes each, line after line.
Keep it under NAME where the pictures are kept."
  (contexture-graphical-test--ask '(redisplay t))
  (let ((file (concat llm-ert-directory "screen.ppm"))
        (folder (getenv "CONTEXTURE_PICTURES"))
        (coding-system-for-read 'no-conversion))
    (call-process "xwdtopnm" nil `((:file ,file) nil) nil
                  "-quiet" (concat llm-ert-directory "Xvfb_screen0"))
    (when (and name folder)
      (make-directory folder t)
      (call-process "pnmtopng" nil
                    `((:file ,(expand-file-name (concat name ".png") folder)) nil) nil
                    "-quiet" file))
    (with-temp-buffer
      (set-buffer-multibyte nil)
      (insert-file-contents-literally file)
      (should (looking-at "P6\n[0-9]+ [0-9]+\n255\n"))
      (buffer-substring (match-end 0) (point-max)))))

(defun contexture-graphical-test--colours (screen edges)
  "Return the colours of SCREEN within EDGES, each a list of three bytes.
EDGES are left, top, right and bottom, in pixels."
  (pcase-let ((`(,left ,top ,right ,bottom) edges)
              (found nil))
    (cl-loop for y from top below bottom do
             (cl-loop for x from left below right
                      for at = (* 3 (+ x (* y (car contexture-graphical-test--size))))
                      do (cl-pushnew (list (aref screen at) (aref screen (+ at 1))
                                           (aref screen (+ at 2)))
                                     found :test #'equal)))
    found))

(defun contexture-graphical-test--fringe (text)
  "Return the edges of the left fringe beside TEXT, in pixels."
  (pcase-let ((`(,left ,right ,top ,height)
               (contexture-graphical-test--ask
                `(save-excursion
                   (goto-char (point-min))
                   (search-forward ,text)
                   (list (car (window-absolute-pixel-edges))
                         (car (window-absolute-body-pixel-edges))
                         (cdr (window-absolute-pixel-position (match-beginning 0)))
                         (frame-char-height))))))
    (list left top right (+ top height))))

(defun contexture-graphical-test--mark-colour ()
  "Return the colour of the marks, a list of three bytes."
  (mapcar (lambda (it) (/ it 256))
          (contexture-graphical-test--ask
           '(color-values (face-foreground 'contexture-mark nil 'default)))))

(defun contexture-graphical-test--fits (&optional less)
  "Check that the selected window shows its header line and lines whole.
Of the header line, LESS may be cut, a text at its end."
  (pcase-let
      ((`(,header ,widest ,room)
        (contexture-graphical-test--ask
         '(list (substring-no-properties (format-mode-line header-line-format))
                (save-excursion
                  (goto-char (point-min))
                  (let ((widest 0))
                    (while (not (eobp))
                      (end-of-line)
                      (setq widest (max widest (current-column)))
                      (forward-line))
                    (if word-wrap 0 widest)))
                (window-max-chars-per-line)))))
    (should (<= (string-width (string-remove-suffix (or less "") header)) 80))
    (should (<= widest room))))

;;;; What counts as shown

;; contexture-drawn-tests.el compares lines with a screen of characters; here, lines
;; differ in height.
(ert-deftest contexture-graphical-changes-count-as-shown-by-their-height ()
  (contexture-graphical-test--with-files
   contexture-graphical-test--files 'modus-operandi
   (lambda ()
     (contexture-graphical-test--ask
      '(progn (find-file "long.txt") (delete-other-windows) (require 'contexture-code) t))
     (pcase-dolist (`(,scale ,line ,count ,all) '((0 3 5 t) (4 3 5 t) (0 3 100 nil) (4 3 30 nil)
                                                  (0 34 20 nil) (4 12 20 nil) (7 2 20 nil)))
       (contexture-graphical-test--ask
        `(progn
           (mapc #'contexture-review--end contexture-review--all)
           (text-scale-set ,scale)
           (goto-char (point-min))
           (set-window-start nil (point-min))
           (save-excursion
             (forward-line (1- ,line))
             (contexture-review--show
              (contexture-review--begin (point) (line-beginning-position 3))
              (apply #'concat (make-list ,count "new\n")) t))
           t))
       (sleep-for 1)
       (pcase-let ((`(,gone ,came ,room)
                    (contexture-graphical-test--ask
                     '(let* ((part (car (contexture-review--parts-here)))
                             (seen (append (overlay-get part 'contexture-seen) nil))
                             (gone (overlay-get part 'contexture-gone)))
                        (list (cl-count-if #'identity seen :end gone)
                              (cl-count-if #'identity seen :start gone)
                              (window-body-height nil t))))))
         (should (equal (list scale line count all)
                        (list scale line count (and (= gone 2) (= came count)))))
         ;; The title and the lines above take room, too.
         (let ((tall (contexture-graphical-test--ask '(line-pixel-height))))
           (should (<= (* tall (+ line -1 gone came)) room))))))))

;;;; Stories

(ert-deftest contexture-graphical-story-of-a-new-user ()
  "The story that the other suites play in batch mode."
  (llm-ert-with-files nil
    :project nil
    (let ((file (concat llm-ert-directory "result")))
      (contexture-graphical-test--with
       (list "-l" "contexture-story-tests" "--eval"
             (format "(let ((result (ert-run-test (ert-get-test 'contexture-story-of-a-new-user))))
                        (write-region (if (ert-test-passed-p result) \"passed\"
                                        (format \"%%S\" result))
                                      nil %S)
                        (kill-emacs))"
                     file))
       (lambda (process)
         (llm-ert-wait-for (not (process-live-p process)) :timeout 300)
         (should (equal "passed" (with-temp-buffer (insert-file-contents file)
                                                   (buffer-string)))))))))

(defconst contexture-graphical-test--files
  `(("area.el" . "(defun area-of (r)\n  \"Area.\"\n  (* pi r r))\n\n(defun other ()\n  'untouched)\n")
    ("long.txt" . ,(mapconcat (lambda (n) (format "line %d of a long text" n))
                              (number-sequence 1 300) "\n")))
  "The files of a project.")

(defun contexture-graphical-test--with-files (files theme function)
  "Call FUNCTION with a graphical Emacs in THEME, a project of FILES and a model."
  (llm-ert-with-files files
    (llm-ert-with-model (lambda (_) "It is the *area* of a circle.\n\n```elisp\n(area-of 2)\n```")
      (make-directory "config/contexture" t)
      (llm-ert-write-file
       "config/contexture/config.toml"
       (format "[[providers]]\nname = \"play\"\nkind = \"openai\"\nmodel = \"played\"\n\
base-url = \"%s/v1\"\n" (llm-ert-url)))
      (contexture-graphical-test--with
       (list "-l" (contexture-graphical-test--init theme) (caar files))
       (lambda (_)
         (llm-ert-wait-for (file-exists-p (concat llm-ert-directory "here")))
         (contexture-graphical-test--until '(frame-visible-p (selected-frame)))
         (funcall function))))))

(defun contexture-graphical-test--day (theme)
  "Play what a new user does with keys and mouse, in THEME, a pair."
  (contexture-graphical-test--with-files
   contexture-graphical-test--files (cdr theme)
   (lambda ()
     (cl-flet ((keep (name) (contexture-graphical-test--screen
                             (format "%s-%s" (car theme) name))))
       (contexture-graphical-test--mark #'keep)
       (contexture-graphical-test--list #'keep)
       (contexture-graphical-test--talk #'keep)))))

(ert-deftest contexture-graphical-pictures-of-a-question-are-shown-small ()
  (contexture-graphical-test--with-files
   contexture-graphical-test--files 'modus-operandi
   (lambda ()
     (let ((coding-system-for-write 'no-conversion)
           (colour (unibyte-string 250 10 20)))
       (with-temp-buffer
         (set-buffer-multibyte nil)
         (insert "P6\n400 300\n255\n")
         (dotimes (_ (* 400 300)) (insert colour))
         (should (eql 0 (call-process-region nil nil "pnmtopng" nil '((:file "shot.png") nil) nil
                                             "-quiet"))))
       (contexture-graphical-test--press "ctrl+c" "x" "shift+r")
       (contexture-graphical-test--until '(derived-mode-p 'contexture-conversation-mode))
       (contexture-graphical-test--press "ctrl+x" "1")
       (let ((shown (lambda ()
                      (string-search (mapconcat #'identity (make-list 100 colour) "")
                                     (contexture-graphical-test--screen "picture")))))
         (should-not (funcall shown))
         (contexture-graphical-test--type "what is @shot.png ")
         (llm-ert-wait-for (funcall shown))
         (should (equal '(160 . 120)
                        (contexture-graphical-test--ask
                         '(image-size (get-text-property
                                       1 'display
                                       (overlay-get contexture-picture--shown 'after-string))
                                      t))))
         (contexture-graphical-test--press "ctrl+a" "ctrl+k")
         (llm-ert-wait-for (not (funcall shown))))))))

(defun contexture-graphical-test--mark (keep)
  "Mark a definition by keys, and see its mark; KEEP takes the screens."
  (contexture-graphical-test--click (contexture-graphical-test--place "pi r r"))
  (contexture-graphical-test--press "ctrl+c" "x" "d")
  (contexture-graphical-test--see "^Added .*area.el:1-3 to ")
  (contexture-graphical-test--until '(cl-some (lambda (it) (overlay-get it 'contexture-mark))
                                              (overlays-in (point-min) (point-max))))
  (let ((screen (funcall keep "mark"))
        (colour (contexture-graphical-test--mark-colour)))
    (dolist (text '("(defun area-of" "(* pi r r)"))
      (should (member colour (contexture-graphical-test--colours
                              screen (contexture-graphical-test--fringe text)))))
    (should-not (member colour (contexture-graphical-test--colours
                                screen (contexture-graphical-test--fringe "'untouched"))))))

(defun contexture-graphical-test--list (keep)
  "Use the list and the preview by mouse; KEEP takes the screens."
  (contexture-graphical-test--press "ctrl+x" "ctrl+f")
  (contexture-graphical-test--type "long.txt")
  (contexture-graphical-test--press "Return")
  (contexture-graphical-test--until '(equal (buffer-name) "long.txt"))
  (contexture-graphical-test--press "ctrl+c" "x" "b")
  (contexture-graphical-test--see "^Added .*long.txt to ")
  (contexture-graphical-test--press "ctrl+c" "x" "l")
  (contexture-graphical-test--until '(derived-mode-p 'contexture-list-mode))
  (contexture-graphical-test--place "area-of (")
  (contexture-graphical-test--press "ctrl+x" "1")
  (funcall keep "list")
  (contexture-graphical-test--fits)
  ;; The first button of the tool bar.
  (contexture-graphical-test--click
   (contexture-graphical-test--ask
    '(let ((geometry (frame-geometry)))
       (cons (+ 20 (car (alist-get 'outer-position geometry)))
             (+ (cdr (alist-get 'outer-position geometry))
                (cdr (alist-get 'menu-bar-size geometry))
                (/ (cdr (alist-get 'tool-bar-size geometry)) 2))))))
  (contexture-graphical-test--until '(eq real-last-command 'contexture-list-refresh))
  (contexture-graphical-test--press "v")
  (contexture-graphical-test--see "^## Context")
  (contexture-graphical-test--press "ctrl+x" "1")
  (funcall keep "preview")
  (contexture-graphical-test--wheel)
  ;; A click on an item opens it where it is.
  (contexture-graphical-test--press "q" "ctrl+c" "x" "l")
  (contexture-graphical-test--click (contexture-graphical-test--place "area-of ("))
  (contexture-graphical-test--until '(equal (buffer-name) "area.el"))
  (contexture-graphical-test--press "ctrl+x" "1"))

(defun contexture-graphical-test--wheel ()
  "Turn the wheel of the mouse over the selected window, down and up again."
  (let ((start (contexture-graphical-test--ask '(window-start)))
        (place (contexture-graphical-test--ask
                '(let ((edges (window-absolute-pixel-edges)))
                   (cons (+ (nth 0 edges) 100) (+ (nth 1 edges) 100))))))
    (contexture-graphical-test--click place 5)
    (contexture-graphical-test--until `(> (window-start) ,start))
    (contexture-graphical-test--click place 4)
    (contexture-graphical-test--until `(= (window-start) ,start))))

(defun contexture-graphical-test--talk (keep)
  "Ask in a conversation; KEEP takes the screens."
  (contexture-graphical-test--press "ctrl+c" "x" "R")
  (contexture-graphical-test--until
   '(and (derived-mode-p 'contexture-conversation-mode) contexture-conversation--stats t))
  (contexture-graphical-test--press "ctrl+x" "1")
  (contexture-graphical-test--type "What is this?")
  (contexture-graphical-test--press "Return")
  (contexture-graphical-test--see "of a circle")
  (contexture-graphical-test--until '(not (contexture-conversation--busy-p)))
  ;; The conversation gets its name from the question.
  (contexture-graphical-test--until
   '(string-suffix-p "  What is this?"
                     (substring-no-properties (format-mode-line header-line-format))))
  (contexture-graphical-test--until
   '(not (string-search "counting..." (format-mode-line header-line-format))))
  (funcall keep "conversation")
  (contexture-graphical-test--fits "  What is this?")
  (contexture-graphical-test--press "ctrl+c" "x" "H")
  (contexture-graphical-test--see "everything is in order\\|Contexture's set-up")
  (contexture-graphical-test--press "ctrl+x" "1")
  (funcall keep "doctor"))

(ert-deftest contexture-graphical-day-in-a-light-theme ()
  (contexture-graphical-test--day (assq 'light contexture-graphical-test--themes)))

(ert-deftest contexture-graphical-day-in-a-dark-theme ()
  (contexture-graphical-test--day (assq 'dark contexture-graphical-test--themes)))

;;;; Faces

(defun contexture-graphical-test--luminance (colour)
  "Return the relative luminance of COLOUR, three numbers from 0 to 65535."
  (apply #'+ (cl-mapcar (lambda (part share)
                          (let ((part (/ part 65535.0)))
                            (* share (if (<= part 0.04045) (/ part 12.92)
                                       (expt (/ (+ part 0.055) 1.055) 2.4)))))
                        colour '(0.2126 0.7152 0.0722))))

(defun contexture-graphical-test--contrast (pair)
  "Return the contrast of PAIR, two colours, as WCAG defines it, from 1 to 21."
  (let ((sorted (sort (mapcar #'contexture-graphical-test--luminance pair) #'>)))
    (/ (+ (car sorted) 0.05) (+ (cadr sorted) 0.05))))

(ert-deftest contexture-graphical-faces-can-be-read-in-both-themes ()
  (dolist (theme contexture-graphical-test--themes)
    (llm-ert-with-files nil
      (contexture-graphical-test--with
       (list "-l" (contexture-graphical-test--init (cdr theme)))
       (lambda (_)
         (llm-ert-wait-for (file-exists-p (concat llm-ert-directory "here")))
         (let ((faces (contexture-graphical-test--ask
                       '(progn
                          (mapc #'require '(contexture-conversation contexture-dashboard
                                            contexture-sessions contexture-point
                                            contexture-code contexture-list))
                          (cl-loop
                           for face in (face-list)
                           when (string-prefix-p "contexture-" (symbol-name face))
                           collect (list face
                                         (color-values (face-foreground face nil 'default))
                                         (color-values (face-background face nil 'default))))))))
           (should (> (length faces) 20))
           (pcase-dolist (`(,face . ,pair) faces)
             (let ((contrast (contexture-graphical-test--contrast pair)))
               (unless (>= contrast 4.5)
                 (ert-fail (list face (cdr theme) contrast)))))))))))

(provide 'contexture-graphical-tests)
;;; contexture-graphical-tests.el ends here
