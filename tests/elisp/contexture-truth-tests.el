;;; contexture-truth-tests.el --- Random days of work, and what is shown then  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Takes random steps: mark, edit, save, revert, kill, rename, check out
;; another branch, let an agent write, let another editor edit, take that
;; back and go, visit a file on another machine, kill the server.  After each step,
;; what the buffers show, what the lists say and what a model would get must
;; be the same, or else be marked as stale.  A failure says by which steps it
;; came about.
;;
;; CONTEXTURE_RANDOM_STEPS is the number of steps, CONTEXTURE_RANDOM_SEED
;; the first seed.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-marks)
(require 'contexture-list)
(require 'tramp)
(load "userlock" nil t)                 ; which overrides what the test replaces

(defconst contexture-truth-tests--steps
  (string-to-number (or (getenv "CONTEXTURE_RANDOM_STEPS") "200"))
  "Number of steps in all.")

(defconst contexture-truth-tests--day 50
  "Number of steps with one project.")

(defconst contexture-truth-tests--names '("a.py" "b.py" "sub/c.py")
  "Names of the files.")

;;;; Dice

(defvar contexture-truth-tests--dice 1
  "State of the dice.")

(defun contexture-truth-tests--roll (n)
  "Return a number below N."
  (setq contexture-truth-tests--dice
        (% (+ (* contexture-truth-tests--dice 1103515245) 12345) 2147483648))
  (% (/ contexture-truth-tests--dice 65536) n))

(defun contexture-truth-tests--one (list)
  "Return an element of LIST."
  (and list (nth (contexture-truth-tests--roll (length list)) list)))

;;;; The world

(defvar contexture-truth-tests--word 0 "Number of the last new word.")
(defvar contexture-truth-tests--other nil "Connection of the other editor.")
(defvar contexture-truth-tests--model nil "Connection of a model.")
(defvar contexture-truth-tests--seen 0 "Number of items that were compared.")
(defvar contexture-truth-tests--theirs nil
  "What the other editor has not saved: a list of (ID NAME TEXT FIRST LAST).")

(defun contexture-truth-tests--block ()
  "Return some lines, which look like many others."
  (let ((word (cl-incf contexture-truth-tests--word)))
    (pcase (contexture-truth-tests--roll 3)
      (0 (list "try:" "    run()" "except E:" "    pass"))
      (1 (list (format "def f%d():" word) (format "    x = %d" word) "    return x" ""))
      (_ (list (format "# note %d" word))))))

(defun contexture-truth-tests--text ()
  "Return the text of a new file."
  (mapconcat (lambda (line) (concat line "\n"))
             (cl-loop repeat (+ 3 (contexture-truth-tests--roll 4))
                      append (contexture-truth-tests--block))
             ""))

(defun contexture-truth-tests--edited (text)
  "Return TEXT with one edit."
  (let* ((lines (butlast (split-string text "\n")))
         (at (contexture-truth-tests--roll (1+ (length lines)))))
    (setq lines
          (pcase (contexture-truth-tests--roll 3)
            (0 (append (seq-take lines at) (contexture-truth-tests--block) (seq-drop lines at)))
            (1 (append (seq-take lines at) (seq-drop lines (+ at 1 (contexture-truth-tests--roll 3)))))
            (_ (append (seq-take lines at)
                       (and (nth at lines)
                            (list (format "%s # %d" (nth at lines)
                                          (cl-incf contexture-truth-tests--word))))
                       (seq-drop lines (1+ at))))))
    (mapconcat (lambda (line) (concat line "\n")) lines "")))

(defun contexture-truth-tests--root ()
  "Return the folder of the project."
  (concat llm-ert-directory "p/"))

(defun contexture-truth-tests--read (file)
  "Return the text of FILE, or nil if there is none."
  (when (file-exists-p file)
    (with-temp-buffer (insert-file-contents file) (buffer-string))))

(defun contexture-truth-tests--write (file text)
  "Write TEXT to FILE as another program does."
  (make-directory (file-name-directory file) t)
  (with-temp-buffer
    (insert text)
    (call-process-region (point-min) (point-max) "tee" nil nil nil file)))

(defun contexture-truth-tests--files ()
  "Return the files of the project that exist."
  (directory-files-recursively (contexture-truth-tests--root) "\\.py\\'"))

(defun contexture-truth-tests--buffers ()
  "Return the buffers that visit files of the project."
  (cl-remove-if-not (lambda (buffer)
                      (string-suffix-p ".py" (or (buffer-file-name buffer) "")))
                    (buffer-list)))

(defun contexture-truth-tests--git (&rest args)
  "Call Git with ARGS."
  (let ((default-directory (contexture-truth-tests--root)))
    (apply #'call-process "git" nil nil nil "-c" "user.name=a" "-c" "user.email=a@b" args)))

;;;; Steps

(defmacro contexture-truth-tests--as (connection &rest body)
  "Run BODY on CONNECTION, without buffers."
  (declare (indent 1) (debug t))
  ;; The hooks of this Emacs are not those of the other one.
  `(cl-letf (((symbol-function 'contexture-live--connected) #'ignore)
             ((symbol-function 'contexture-live--disconnected) #'ignore))
     (prog1 (contexture-test-as-other-emacs ,connection ,@body)
       (cancel-function-timers 'contexture-live--connected))))

(defun contexture-truth-tests--some-buffer ()
  "Return a buffer that visits a file, or visit one."
  (or (and (/= 0 (contexture-truth-tests--roll 3))
           (contexture-truth-tests--one (contexture-truth-tests--buffers)))
      (let ((file (contexture-truth-tests--one (contexture-truth-tests--files))))
        (and file
             (or (get-file-buffer file)
                 ;; Nobody types before the server has told of the file's items.
                 (prog1 (find-file-noselect file t) (contexture-test-settle)))))))

(defun contexture-truth-tests--mark ()
  "Mark lines of a file, or a whole one."
  (when-let* ((buffer (contexture-truth-tests--some-buffer)))
    (with-current-buffer buffer
      (let* ((count (max 1 (1- (line-number-at-pos (point-max)))))
             (first (1+ (contexture-truth-tests--roll count)))
             (last (min count (+ first (contexture-truth-tests--roll 4)))))
        (cond ((= (point-min) (point-max)))
              ((= 0 (contexture-truth-tests--roll 5)) (contexture-add-buffer))
              ((= 0 (contexture-truth-tests--roll 4))
               (contexture-add-file buffer-file-name))
              (t (contexture-add-region (contexture--line-position first)
                                        (contexture--line-position (1+ last)))))
        (contexture-test-settle)
        (format "mark %s %d-%d" (buffer-name) first last)))))

(defun contexture-truth-tests--edit ()
  "Edit a buffer."
  (when-let* ((buffer (contexture-truth-tests--some-buffer)))
    (with-current-buffer buffer
      (let ((new (contexture-truth-tests--edited (buffer-string)))
            (old (buffer-string)))
        ;; As typed: only what differs is replaced.
        (let* ((shared (contexture-live--shared-ends old new))
               (beg (+ (point-min) (car shared)))
               (end (- (point-max) (cdr shared))))
          (goto-char beg)
          (delete-region beg end)
          (insert (substring new (car shared) (- (length new) (cdr shared)))))
        (format "edit %s:\n%s" (buffer-name) new)))))

(defun contexture-truth-tests--save ()
  "Save a buffer."
  (when-let* ((buffer (contexture-truth-tests--one (contexture-truth-tests--buffers))))
    (with-current-buffer buffer
      (make-directory default-directory t)
      (let ((save-silently t)) (save-buffer))
      (format "save %s" (buffer-name)))))

(defun contexture-truth-tests--revert ()
  "Revert a buffer."
  (when-let* ((buffer (contexture-truth-tests--one (contexture-truth-tests--buffers))))
    (with-current-buffer buffer
      (when (file-exists-p buffer-file-name)
        (revert-buffer t t)
        (contexture-test-settle)
        (format "revert %s" (buffer-name))))))

(defun contexture-truth-tests--kill ()
  "Kill a buffer."
  (when-let* ((buffer (contexture-truth-tests--one (contexture-truth-tests--buffers))))
    (let ((name (buffer-name buffer)))
      (kill-buffer buffer)
      (contexture-test-settle)
      (format "kill %s" name))))

(defun contexture-truth-tests--rename ()
  "Rename a file, with its buffer if there is one."
  (when-let* ((file (contexture-truth-tests--one (contexture-truth-tests--files))))
    (let ((new (expand-file-name (format "n%d.py" (cl-incf contexture-truth-tests--word))
                                 (file-name-directory file)))
          (buffer (get-file-buffer file)))
      (unless (and (= 0 (contexture-truth-tests--roll 2))
                   (eql 0 (contexture-truth-tests--git "mv" file new)))
        (rename-file file new))
      (when buffer
        (with-current-buffer buffer (set-visited-file-name new nil t)))
      (format "rename %s to %s" file new))))

(defun contexture-truth-tests--checkout ()
  "Commit everything on a new branch, or check out another one."
  (let ((branch (format "b%d" (contexture-truth-tests--roll 3))))
    (contexture-truth-tests--git "add" "-A")
    (contexture-truth-tests--git "commit" "-qm" "x")
    (unless (eql 0 (contexture-truth-tests--git "checkout" "-q" branch))
      (contexture-truth-tests--git "checkout" "-qb" branch))
    (format "checkout %s" branch)))

(defun contexture-truth-tests--agent ()
  "Let another program write a file."
  (when-let* ((file (contexture-truth-tests--one (contexture-truth-tests--files))))
    (let ((text (contexture-truth-tests--edited (contexture-truth-tests--read file))))
      (contexture-truth-tests--write file text)
      (format "agent writes %s:\n%s" file text))))

(defun contexture-truth-tests--restart ()
  "Kill the server."
  (contexture-ert-kill-server)
  (setq contexture-truth-tests--theirs nil)
  (contexture-truth-tests--as contexture-truth-tests--other (contexture-disconnect))
  (contexture-truth-tests--as contexture-truth-tests--model (contexture-disconnect))
  (contexture-request 'ping)
  (contexture-test-settle)
  "kill the server")

(defun contexture-truth-tests--their-edit ()
  "Let the other editor edit an item without saving it."
  (contexture-truth-tests--as contexture-truth-tests--other
    (contexture-request 'subscribe '(:topics (:text-wanted)))
    (when-let* ((items (contexture-request 'list-items '(:manager "*shared*")))
                (item (contexture-truth-tests--one
                       (cl-remove-if-not
                        (lambda (item)
                          (let ((metadata (plist-get item :metadata)))
                            (and (plist-get item :live) (plist-get metadata :filename)
                                 (plist-get metadata :start-line)
                                 (not (plist-get metadata :partial)))))
                        items))))
      (let* ((metadata (plist-get item :metadata))
             (text (concat (format "theirs %d\n" (cl-incf contexture-truth-tests--word))
                           (plist-get item :content)))
             (first (plist-get metadata :start-line))
             (last (1+ (plist-get metadata :end-line))))
        (setf (alist-get (plist-get item :id) contexture-truth-tests--theirs nil nil #'equal)
              (list (plist-get metadata :filename) text first last))
        (contexture-request
         'update-items
         `(:items ((:id ,(plist-get item :id) :manager "*shared*" :content ,text
                    :metadata (:start-line ,first :end-line ,last :unsaved t :modified t)))))
        (format "they edit %s:\n%s" (plist-get item :id) text)))))

(defun contexture-truth-tests--they-return ()
  "Let the other editor take back its edits, as by reverting its buffers."
  (when contexture-truth-tests--theirs
    (contexture-truth-tests--as contexture-truth-tests--other
      (contexture-request
       'update-items
       (list :items (cl-loop for (id name) in contexture-truth-tests--theirs
                             collect `(:id ,id :manager "*shared*"
                                       :metadata
                                       (:unsaved nil :modified nil
                                        ;; The server cannot look there.
                                        :stale ,(and (file-remote-p name)
                                                     "its text was not saved")))))))
    (setq contexture-truth-tests--theirs nil)
    (contexture-test-settle)
    "they take back their edits"))

(defun contexture-truth-tests--they-go ()
  "Let the other editor end without saving."
  (when contexture-truth-tests--theirs
    (setq contexture-truth-tests--theirs nil)
    (contexture-truth-tests--as contexture-truth-tests--other (contexture-disconnect))
    (contexture-test-settle)
    "they go"))

(defun contexture-truth-tests--remote ()
  "Visit a file on another machine, which other steps then mark and edit."
  (let ((local (concat llm-ert-directory "far/r.py")))
    (unless (file-exists-p local)
      (contexture-truth-tests--write local (contexture-truth-tests--text)))
    (find-file-noselect (concat "/mock::" local) t)
    (contexture-test-settle)
    "visit a remote file"))

(defun contexture-truth-tests--clear ()
  "Empty the context, so that there is room."
  (contexture-request 'remove-items '(:all t :manager "*shared*"))
  (setq contexture-truth-tests--theirs nil)
  (contexture-test-settle)
  "clear")

(defconst contexture-truth-tests--kinds
  '((mark . 8) (edit . 8) (save . 4) (revert . 2) (kill . 2) (rename . 2) (checkout . 2)
    (agent . 4) (remote . 1) (restart . 1) (their-edit . 3) (they-return . 1) (they-go . 1) (clear . 1))
  "The kinds of steps, and how often each is taken.")

(defun contexture-truth-tests--step ()
  "Take a step, and return what it was, or nil if it was not possible."
  (let ((kind (contexture-truth-tests--one
               (cl-loop for (kind . often) in contexture-truth-tests--kinds
                        append (make-list often kind)))))
    (funcall (intern (format "contexture-truth-tests--%s" kind)))))

;;;; What must be so

(defun contexture-truth-tests--lines (text metadata)
  "Return the lines of TEXT that METADATA names, or all of it, or nil."
  (when text
    (let ((first (plist-get metadata :start-line)))
      (if (null first) text
        (let ((lines (split-string text "\n")))
          (mapconcat (lambda (line) (concat line "\n"))
                     (seq-subseq lines (min (length lines) (1- first))
                                 (min (length lines) (plist-get metadata :end-line)))
                     ""))))))

(defun contexture-truth-tests--same-p (item text)
  "Return non-nil if ITEM has its lines of TEXT, without the last newline."
  (let ((lines (contexture-truth-tests--lines text (plist-get item :metadata))))
    (and lines
         (equal (string-remove-suffix "\n" (plist-get item :content))
                (string-remove-suffix "\n" lines)))))

(defun contexture-truth-tests--live (items)
  "Return those of ITEMS that follow files and are certain."
  (cl-remove-if-not (lambda (item)
                      (and (plist-get item :live)
                           (eq (plist-get item :state) :fresh)
                           (plist-get (plist-get item :metadata) :filename)))
                    items))

(defun contexture-truth-tests--current-p (buffer)
  "Return non-nil if BUFFER has edits, or the text of its file.
Another program may have written the file of a buffer without edits, which
Emacs reads again when it notices."
  (or (buffer-modified-p buffer) (verify-visited-file-modtime buffer)))

(defun contexture-truth-tests--buffer-text (file)
  "Return the text of the buffer that visits FILE, or nil."
  (when-let* ((buffer (get-file-buffer file)))
    (and (contexture-truth-tests--current-p buffer)
         (with-current-buffer buffer (contexture--widened (buffer-string))))))

(defun contexture-truth-tests--wrong-here (items)
  "Return those of ITEMS, as this Emacs is shown them, that are wrong."
  (cl-remove-if
   (lambda (item)
     (let ((file (plist-get (plist-get item :metadata) :filename)))
       (contexture-truth-tests--same-p item (or (contexture-truth-tests--buffer-text file)
                                                (contexture-truth-tests--read file)))))
   (contexture-truth-tests--live items)))

(defun contexture-truth-tests--wrong-overlays (items)
  "Return those of ITEMS whose overlays in buffers are elsewhere."
  (cl-remove-if
   (lambda (item)
     (pcase (contexture-live--find-item (plist-get item :id))
       (`(,buffer . ,known)
        (let ((overlay (contexture-live--item-overlay known)))
          (or (not (overlayp overlay))
              (not (contexture-truth-tests--current-p buffer))
              (with-current-buffer buffer
                (contexture--widened
                  (and (overlay-start overlay)
                       (equal (plist-get item :content)
                              (buffer-substring-no-properties (overlay-start overlay)
                                                              (overlay-end overlay)))))))))
       (_ t)))
   (contexture-truth-tests--live items)))

(defun contexture-truth-tests--wrong-for-model (items)
  "Return those of ITEMS, as a model is shown them, that are wrong."
  (cl-remove-if
   (lambda (item)
     (let* ((file (plist-get (plist-get item :metadata) :filename))
            (buffer (get-file-buffer file))
            (theirs (alist-get (plist-get item :id) contexture-truth-tests--theirs
                               nil nil #'equal))
            (texts (delq nil (list (and buffer (buffer-modified-p buffer)
                                        (contexture-truth-tests--same-p
                                         item (contexture-truth-tests--buffer-text file)))
                                   (and theirs (equal (nth 1 theirs)
                                                      (plist-get item :content)))))))
       (or texts
           (and (contexture-truth-tests--same-p item (contexture-truth-tests--read file))
                (null theirs)))))
   (contexture-truth-tests--live items)))

(defun contexture-truth-tests--sent (text)
  "Return the lines that TEXT, which was rendered, shows as current.
Each is a list of the name of its file, its number and its text."
  (let (lines)
    (with-temp-buffer
      (insert text)
      (goto-char (point-min))
      (while (re-search-forward "^### .*(from \\(.*\\):\\([0-9]+\\)\\(?:-[0-9]+\\)?)\
\\(?: \\[as of [^];]+\\]\\)?\n```.*\n" nil t)
        (let ((name (match-string 1))
              (line (string-to-number (match-string 2))))
          (while (not (looking-at-p "```"))
            (push (list name line (buffer-substring (point) (line-end-position))) lines)
            (cl-incf line)
            (forward-line)))))
    lines))

(defun contexture-truth-tests--sent-p (item text sent)
  "Return non-nil if ITEM is in TEXT, which was rendered, as a whole or by its lines.
Lines that two items share are shown once.  SENT is the value of
`contexture-truth-tests--sent' for TEXT."
  (let* ((content (string-trim-right (plist-get item :content)))
         (metadata (plist-get item :metadata))
         (line (plist-get metadata :start-line)))
    (or (string-search content text)
        (and line
             (cl-loop for each in (split-string content "\n")
                      for number from line
                      always (cl-some (lambda (it)
                                        (and (equal (cdr it) (list number each))
                                             (string-suffix-p
                                              (car it) (plist-get metadata :filename))))
                                      sent))))))

(defun contexture-truth-tests--differences ()
  "Return what is wrong now, as a list."
  (let* ((items (contexture-request 'list-items '(:manager "*shared*")))
         (text (contexture-request 'context-to-string '(:manager "*shared*")))
         (sent (contexture-truth-tests--sent text))
         (items-for-model
          (progn
            (contexture-test-settle)
            (contexture-truth-tests--as contexture-truth-tests--model
              (contexture-request 'list-items '(:manager "*shared*"))))))
    (cl-incf contexture-truth-tests--seen (length (contexture-truth-tests--live items)))
    (nconc
     (mapcar (lambda (item) (list 'here item)) (contexture-truth-tests--wrong-here items))
     (mapcar (lambda (item) (list 'overlay item
                                  (contexture-live--find-item (plist-get item :id))))
             (contexture-truth-tests--wrong-overlays items))
     (mapcar (lambda (item) (list 'model item))
             (contexture-truth-tests--wrong-for-model items-for-model))
     ;; What is rendered is what is listed.
     (cl-loop for item in (contexture-truth-tests--live items)
              unless (or (plist-get item :covered-by)
                         (contexture-truth-tests--sent-p item text sent))
              collect (list 'rendered item)))))

;;;; Other editors

(ert-deftest contexture-truth-this-emacs-is-itself-while-another-is-played ()
  (contexture-test-with-server
    (contexture-request 'ping)
    (let* ((mine (contexture-current-connection))
           (other nil) (heard nil)
           (contexture-notification-functions
            (list (lambda (&rest _) (push contexture--connection heard)))))
      (contexture--queue-news mine 'context-changed '(:manager "m"))
      (contexture-test-as-other-emacs other
        (contexture-request 'ping)
        (llm-ert-wait-for heard)
        (should-not (eq contexture--connection mine))
        (contexture-disconnect))
      (should (equal heard (list mine)))
      (should (eq contexture--connection mine)))))

(ert-deftest contexture-truth-an-item-gets-its-place-once-no-other-editor-has-it ()
  (let ((contexture-truth-tests--other nil)
        (contexture-truth-tests--theirs nil)
        (create-lockfiles nil) (vc-handled-backends nil))
    (contexture-test-with-state
      (setq contexture-add-to 'shared)
      (let ((file (expand-file-name "o.py" (contexture-truth-tests--root)))
            (text "def a():\n    b = 2\n"))
        (contexture-truth-tests--write file (concat text "c = 3\n"))
        (with-current-buffer (find-file-noselect file t)
          (contexture-add-region (contexture--line-position 1) (contexture--line-position 3))
          (contexture-test-settle)
          (kill-buffer))
        (should (contexture-truth-tests--their-edit))
        (with-current-buffer (find-file-noselect file t)
          (contexture-test-settle)
          (should (contexture-truth-tests--they-return))
          (pcase-let* ((`(,item) (contexture-request 'list-items '(:manager "*shared*")))
                       (_ (contexture-test-settle))
                       (overlay (contexture-live--overlay (plist-get item :id))))
            (should (eq (plist-get item :state) :fresh))
            (should (equal (plist-get item :content) text))
            (should overlay)
            (should (equal (buffer-substring-no-properties (overlay-start overlay)
                                                           (overlay-end overlay))
                           text)))
          (kill-buffer)))
      (contexture-truth-tests--as contexture-truth-tests--other (contexture-disconnect)))))

(ert-deftest contexture-truth-an-item-without-a-place-is-not-certain-beside-edits ()
  (let ((contexture-truth-tests--other nil) (contexture-truth-tests--model nil)
        (contexture-truth-tests--theirs nil) (contexture-truth-tests--word 0)
        (create-lockfiles nil) (make-backup-files nil) (vc-handled-backends nil))
    (contexture-test-with-state
      (setq contexture-add-to 'shared)
      (let ((file (expand-file-name "o.py" (contexture-truth-tests--root))))
        (contexture-truth-tests--write file "a = 1\nb = 2\nc = 3\n")
        (with-current-buffer (find-file-noselect file t)
          (contexture-add-region (contexture--line-position 2) (contexture--line-position 4))
          (contexture-test-settle)
          (should (contexture-truth-tests--their-edit))
          (insert "# mine\n")
          (should-not (contexture-truth-tests--differences))
          (revert-buffer t t)
          (contexture-test-settle)
          (goto-char (contexture--line-position 3))
          (insert "# between\n")
          (should-not (contexture-truth-tests--differences))
          (should (contexture-truth-tests--they-return))
          (should-not (contexture-truth-tests--differences))
          (set-buffer-modified-p nil)
          (kill-buffer)))
      (contexture-truth-tests--as contexture-truth-tests--other (contexture-disconnect))
      (contexture-truth-tests--as contexture-truth-tests--model (contexture-disconnect)))))

(ert-deftest contexture-truth-a-part-marked-here-is-not-taken-for-an-item-without-a-place ()
  (let ((contexture-truth-tests--other nil) (contexture-truth-tests--model nil)
        (contexture-truth-tests--theirs nil) (contexture-truth-tests--word 0)
        (create-lockfiles nil) (make-backup-files nil) (vc-handled-backends nil))
    (contexture-test-with-state
      (setq contexture-add-to 'shared)
      (let ((file (expand-file-name "o.py" (contexture-truth-tests--root))))
        (contexture-truth-tests--write file "a = 1\nb = 2\nc = 3\nd = 4\ne = 5\n")
        (with-current-buffer (find-file-noselect file t)
          (contexture-add-region (contexture--line-position 1) (contexture--line-position 5))
          (contexture-test-settle)
          (should (contexture-truth-tests--their-edit))
          (revert-buffer t t)
          (contexture-test-settle)
          (contexture-add-region (contexture--line-position 4) (contexture--line-position 5))
          (contexture-test-settle)
          (pcase-let ((`(,item) (contexture-request 'list-items '(:manager "*shared*"))))
            (should (equal (contexture-live--item-lines (plist-get item :metadata)) '(1 . 4)))
            (should-not (contexture-live--overlay (plist-get item :id))))
          (goto-char (contexture--line-position 4))
          (insert "# typed\n")
          (should-not (contexture-truth-tests--differences))
          (pcase-let ((`(,item) (contexture-request 'list-items '(:manager "*shared*"))))
            (should (string-search "b = 2" (plist-get item :content))))
          (should (contexture-truth-tests--they-return))
          (should-not (contexture-truth-tests--differences))
          (set-buffer-modified-p nil)
          (kill-buffer)))
      (contexture-truth-tests--as contexture-truth-tests--other (contexture-disconnect))
      (contexture-truth-tests--as contexture-truth-tests--model (contexture-disconnect)))))

;;;; Copies

(defun contexture-truth-tests--placed ()
  "Return the state of the only item, with its lines and text if it is certain."
  (pcase-let* ((`(,item) (contexture-request 'list-items '(:manager "*shared*")))
               (metadata (plist-get item :metadata)))
    (cons (plist-get item :state)
          (and (eq (plist-get item :state) :fresh)
               (list (plist-get metadata :start-line) (plist-get metadata :end-line)
                     (plist-get item :content))))))

(defun contexture-truth-tests--scene (visited before lines after &optional far)
  "Mark LINES of a file with the text BEFORE, then let another program write AFTER.
Return the item's states, if VISITED before and after the buffer is reverted.
If FAR, the file is visited as one on another machine."
  (let* ((name (expand-file-name "s.py" (contexture-truth-tests--root)))
         (file (if far (concat "/mock::" name) name))
         states)
    (contexture-truth-tests--clear)
    (contexture-truth-tests--write name before)
    (with-current-buffer (find-file-noselect file t)
      (contexture-add-region (contexture--line-position (car lines))
                             (contexture--line-position (1+ (cdr lines))))
      (contexture-test-settle)
      (unless visited
        (kill-buffer)
        (contexture-test-settle)))
    (contexture-truth-tests--placed)
    (contexture-truth-tests--write name after)
    (push (contexture-truth-tests--placed) states)
    (when visited
      (with-current-buffer (find-buffer-visiting file)
        (revert-buffer t t)
        (contexture-test-settle)
        (push (contexture-truth-tests--placed) states)
        (kill-buffer)))
    states))

(ert-deftest contexture-truth-no-buffer-is-certain-of-what-the-server-doubts ()
  (let ((contexture-truth-tests--dice 7) (contexture-truth-tests--word 0)
        (contexture-truth-tests--theirs nil)
        (create-lockfiles nil) (make-backup-files nil) (vc-handled-backends nil)
        (doubts 0) wrong)
    (contexture-test-with-state
      (setq contexture-add-to 'shared)
      (make-directory (contexture-truth-tests--root))
      (dotimes (_ (/ contexture-truth-tests--steps 4))
        (let* ((before (contexture-truth-tests--text))
               (count (max 1 (1- (length (split-string before "\n")))))
               (first (1+ (contexture-truth-tests--roll count)))
               (lines (cons first (min count (+ first (contexture-truth-tests--roll 4)))))
               (after before))
          (dotimes (_ (1+ (contexture-truth-tests--roll 3)))
            (setq after (contexture-truth-tests--edited after)))
          (let ((alone (contexture-truth-tests--scene nil before lines after))
                (visited (contexture-truth-tests--scene t before lines after)))
            (when (eq (caar alone) :stale) (cl-incf doubts))
            (unless (equal visited (append alone alone))
              (push (list before lines after alone visited) wrong))))))
    (should-not wrong)
    (should (> doubts 0))))

(ert-deftest contexture-truth-a-revert-leaves-it-to-the-server-where-an-item-is ()
  (let ((contexture-truth-tests--theirs nil)
        (create-lockfiles nil) (make-backup-files nil) (vc-handled-backends nil))
    (contexture-test-with-state
      (setq contexture-add-to 'shared)
      (make-directory (contexture-truth-tests--root))
      (contexture-request 'ping)
      (contexture-test-settle)
      (should (memq 'contexture-live--opened find-file-hook))
      (dolist (find-file-hook (list find-file-hook
                                    (append find-file-hook (list (lambda () (contexture-mode))))))
        (pcase-dolist
            (`(,before ,lines ,after)
             '(("# a\n# b\n# c\n" (2 . 3) "# a\n# b\n# c # 1 # 2 # 3\n")
               ("def f():\n    x = 1\n    return x\n\n" (1 . 2)
                "def f():\n    x = 1 # 2\n    return x\n\n")
               ("scale = 1000\nunit = \"m\"\n" (1 . 2) "# head\nscale = 1005\nunit = \"m\"\n")
               ("try:\n    run()\nexcept E:\n    pass\ntry:\n    run()\nexcept E:\n    pass\n" (3 . 5)
                "try:\n    run()\nexcept E: # 1\n    pass\ntry:\n    run()\nexcept E:\n    pass\n\
try:\n    run()\nexcept E:\n    pass\n")))
          (let ((alone (contexture-truth-tests--scene nil before lines after)))
            (should (equal (contexture-truth-tests--scene t before lines after)
                           (append alone alone)))))))))

(ert-deftest contexture-truth-another-buffer-is-told-of-while-one-is-reverted ()
  (let ((create-lockfiles nil) (make-backup-files nil) (vc-handled-backends nil)
        (contexture-truth-tests--theirs nil) seen)
    (contexture-test-with-state
      (setq contexture-add-to 'shared)
      (let ((buffers (mapcar (lambda (name)
                               (let ((file (expand-file-name name (contexture-truth-tests--root))))
                                 (contexture-truth-tests--write file "a = 1\nb = 2\n")
                                 (with-current-buffer (find-file-noselect file t)
                                   (contexture-add-region (contexture--line-position 2) (point-max))
                                   (contexture-test-settle)
                                   (current-buffer))))
                             '("a.py" "b.py"))))
        (with-current-buffer (car buffers)
          (goto-char (point-max))
          (insert "c = 3\n")
          (goto-char (contexture--line-position 2))
          (insert "# typed\n")
          (end-of-line)
          (insert "2"))
        (let ((find-file-hook
               (list (lambda () (setq seen (contexture-request 'context-to-string
                                                               '(:manager "*shared*")))))))
          (with-current-buffer (cadr buffers) (revert-buffer t t)))
        (should (string-search "b = 22" seen))
        (dolist (buffer buffers)
          (with-current-buffer buffer (set-buffer-modified-p nil))
          (kill-buffer buffer))))))

(defconst contexture-truth-tests--block "try:\n    run()\nexcept E:\n    pass\n"
  "Lines of which a file may have several copies.")

(ert-deftest contexture-truth-a-copy-on-another-machine-is-taken-for-no-other ()
  (let ((block contexture-truth-tests--block)
        (contexture-truth-tests--theirs nil)
        (create-lockfiles nil) (make-backup-files nil) (vc-handled-backends nil))
    (contexture-test-with-mock-method
      (contexture-test-with-state
        (setq contexture-add-to 'shared)
        (make-directory (contexture-truth-tests--root))
        (pcase-dolist
            (`(,before ,lines ,after ,expected)
             `((,(concat "# A\n" block "# B\n" block "# C\n") (7 . 10)
                ,(concat "# A\n# B\n" block "# C\n") (:fresh 3 6 ,block))
               (,(concat "# A\n" block "# B\n" block "# C\n") (7 . 10)
                ,(concat "# A\n" block "# B\n# C\n") (:stale))
               (,(concat "# A\n" block "# C\n") (2 . 5)
                ,(concat "# Z\n" block "# A\n" block "# C\n") (:fresh 7 10 ,block))
               ("f() {\n  a\n}\ng() {\n  b\n}\nh() {\n  c\n}\n" (6 . 6)
                "f() {\n  a\n}\nh() {\n  c\n}\n" (:stale))
               ("a = 1\nb = 2\nc = 3\n" (2 . 2) "a = 1\nb = 22\nc = 3\n"
                (:fresh 2 2 "b = 22\n"))))
          (should (equal (car (contexture-truth-tests--scene t before lines after t))
                         expected)))))))

(ert-deftest contexture-truth-what-a-saved-file-lacks-is-not-certain-after-its-buffer ()
  "Only this Emacs knows what became of a file on another machine."
  (let ((contexture-truth-tests--theirs nil)
        (create-lockfiles nil) (make-backup-files nil) (vc-handled-backends nil))
    (contexture-test-with-mock-method
      (contexture-test-with-state
        (setq contexture-add-to 'shared)
        (let ((name (expand-file-name "s.py" (contexture-truth-tests--root))))
          (contexture-truth-tests--write name "a = 1\nb = 2\n")
          (with-current-buffer (find-file-noselect (concat "/mock::" name) t)
            (contexture-add-region (contexture--line-position 2) (point-max))
            (contexture-test-settle)
            (delete-region (contexture--line-position 2) (point-max))
            (contexture-truth-tests--placed)
            (let ((save-silently t)) (save-buffer))
            (contexture-truth-tests--placed)
            (goto-char (point-min))
            (insert "# not saved\n")
            (contexture-truth-tests--placed)
            (kill-buffer))
          (contexture-test-settle)
          (should (equal (contexture-truth-tests--placed) '(:stale))))))))

;;;; The test

(defun contexture-truth-tests--run (seed steps)
  "Take STEPS steps from SEED in a new project; return what they found wrong."
  (let ((contexture-truth-tests--dice seed)
        (contexture-truth-tests--word 0)
        (contexture-truth-tests--other nil)
        (contexture-truth-tests--model nil)
        (contexture-truth-tests--theirs nil)
        (create-lockfiles nil)
        (make-backup-files nil)
        (auto-save-default nil)
        (vc-handled-backends nil)
        history wrong)
    (contexture-test-with-mock-method
      (cl-letf (((symbol-function 'yes-or-no-p) #'always)
                ((symbol-function 'y-or-n-p) #'always)
                ((symbol-function 'ask-user-about-supersession-threat) #'ignore))
        (contexture-test-with-state
          (setq contexture-add-to 'shared)
          (make-directory (contexture-truth-tests--root))
          (contexture-truth-tests--git "init" "-q")
          (dolist (name contexture-truth-tests--names)
            (contexture-truth-tests--write (expand-file-name name (contexture-truth-tests--root))
                                           (contexture-truth-tests--text)))
          (contexture-request 'ping)
          (unwind-protect
              (while (and (>= (cl-decf steps) 0) (null wrong))
                (when-let* ((step (contexture-truth-tests--step)))
                  (push step history)
                  (setq wrong (contexture-truth-tests--differences))))
            (contexture-truth-tests--as contexture-truth-tests--other (contexture-disconnect))
            (contexture-truth-tests--as contexture-truth-tests--model (contexture-disconnect))
            (dolist (buffer (contexture-truth-tests--buffers))
              (with-current-buffer buffer (set-buffer-modified-p nil))
              (kill-buffer buffer))))))
    (and wrong (list :seed seed :steps (nreverse history) :wrong wrong))))

(ert-deftest contexture-truth-buffers-lists-and-models-agree-or-say-so ()
  (let ((seed (string-to-number (or (getenv "CONTEXTURE_RANDOM_SEED") "1")))
        (left contexture-truth-tests--steps)
        (contexture-truth-tests--seen 0))
    (while (> left 0)
      (let ((found (contexture-truth-tests--run seed (min left contexture-truth-tests--day))))
        (when found (ert-fail (list (format "%S" found)))))
      (cl-decf left contexture-truth-tests--day)
      (cl-incf seed))
    ;; Most of what was there was certain, and so it was compared.
    (should (> contexture-truth-tests--seen (/ contexture-truth-tests--steps 2)))))

(provide 'contexture-truth-tests)
;;; contexture-truth-tests.el ends here
