;;; contexture-menu-tests.el --- Tests of the menu  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What the menu shows, and the commands for a whole context that it
;; names: refreshing and making room.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-menu)

(defun contexture-menu-tests--suffixes (&optional layout)
  "Return pairs of key and command in LAYOUT, the menu's unless given."
  (let ((layout (or layout (get 'contexture-menu 'transient--layout))))
    (cond ((and (proper-list-p layout) (keywordp (car layout))
                (plist-get layout :command))
           (list (cons (plist-get layout :key) (plist-get layout :command))))
          ((consp layout)
           (append (contexture-menu-tests--suffixes (car layout))
                   (and (cdr layout)
                        (contexture-menu-tests--suffixes (cdr layout)))))
          ((vectorp layout)
           (mapcan #'contexture-menu-tests--suffixes
                   (delq nil (append layout nil)))))))

(defmacro contexture-menu-tests--in-buffer (&rest body)
  "Run BODY in a buffer of three lines, with a server."
  (declare (indent 0) (debug t))
  `(contexture-test-with-server
     (clrhash contexture--totals)
     (contexture-test-visiting (contexture-test-file "a.txt" "one" "two" "three")
       ,@body)))

;;;; The menu

(ert-deftest contexture-menu-has-the-keys-of-the-command-map ()
  (let ((suffixes (contexture-menu-tests--suffixes)))
    (map-keymap (lambda (event command)
                  (unless (memq command '(contexture-menu contexture-conversation-map
                                                   contexture-lisp-map))
                    (should (equal (cons (string event) command)
                                   (rassq command suffixes)))))
                contexture-command-map)
    (should (eq (lookup-key contexture-command-map "?") 'contexture-menu))))

(ert-deftest contexture-menu-gives-no-key-a-second-meaning ()
  (pcase-dolist (`(,key . ,command) (contexture-menu-tests--suffixes))
    (unless (string-prefix-p "-" key)   ; an option
      (should (eq (contexture-menu-tests--binding key) command)))))

(defun contexture-menu-tests--binding (key)
  "Return what KEY, as the menu writes it, is behind the prefix."
  (require 'contexture-conversations)
  (require 'contexture-lisp)
  (lookup-key contexture-command-map (kbd key)))

(ert-deftest contexture-menu-of-sessions-has-the-keys-of-their-map ()
  (require 'contexture-conversations)
  (let ((suffixes (contexture-menu-tests--suffixes
                   (get 'contexture-conversation-menu 'transient--layout))))
    (map-keymap (lambda (event command)
                  (unless (eq command 'contexture-conversation-menu)
                    (should (equal (cons (string event) command)
                                   (rassq command suffixes)))))
                contexture-conversation-map)
    (pcase-dolist (`(,key . ,command) suffixes)
      (should (eq (lookup-key contexture-conversation-map key) command))
      (should (commandp command)))))

(ert-deftest contexture-menu-names-commands-only ()
  (pcase-dolist (`(,_ . ,command) (contexture-menu-tests--suffixes))
    (should (commandp command))))

(ert-deftest contexture-menu-loads-no-file-of-a-command ()
  "They are loaded as soon as one is called."
  (with-temp-buffer
    (call-process
     (expand-file-name invocation-name invocation-directory) nil t nil "-Q" "--batch"
     "-L" (file-name-directory (locate-library "contexture")) "-l" "contexture"
     "--eval" (prin1-to-string
               '(progn
                  (contexture-menu)
                  (let ((features (mapcar #'symbol-name features)))
                    (prin1 (list (length features)
                                 (seq-filter (lambda (name)
                                               (string-match-p "contexture\\|jsonrpc" name))
                                             features)
                                 (autoloadp (symbol-function 'contexture-undo))
                                 (autoloadp (symbol-function 'contexture-conversation)))))
                  (condition-case problem
                      (call-interactively #'contexture-rewrite)
                    (error (prin1 problem)))
                  (prin1 (featurep 'contexture-conversation)))))
    (let ((text (buffer-string)))
      (should (string-match-p
               "(\"contexture-menu\" \"contexture-marks\" \"contexture\" \"contexture-generated\") t t)" text))
      (should (string-match-p "error.*t\\'" text)))))

(ert-deftest contexture-menu-heading-shows-context-items-and-tokens ()
  (contexture-menu-tests--in-buffer
    (should (equal (contexture-menu--heading)
                   "Context of buffer a.txt: its size appears after the first command"))
    (contexture--note-totals "a.txt" '(:count 3 :tokens 412 :version 7))
    (let ((contexture-limit nil))
      (should (equal (contexture-menu--heading)
                     "Context of buffer a.txt: 3 items, 412 tokens")))
    (let ((contexture-limit 800))
      (should (equal (contexture-menu--heading)
                     "Context of buffer a.txt: 3 items, 412 of 800 tokens (51 %)")))))

(ert-deftest contexture-menu-asks-no-server-that-does-not-run ()
  (contexture-menu-tests--in-buffer
    (contexture-menu--fetch)
    (should-not contexture--connection)))

(ert-deftest contexture-menu-shows-the-present-size ()
  (contexture-menu-tests--in-buffer
    (contexture-request 'add-context '(:manager "a.txt" :content "one"))
    (let ((contexture-menu--patience 10))
      (contexture-menu--fetch))
    (should (string-match-p "1 item, 1 token\\'" (contexture-menu--heading)))))

(ert-deftest contexture-menu-comes-up-without-an-answer ()
  (contexture-menu-tests--in-buffer
    (contexture-request 'ping)
    (let ((contexture-menu--patience 0))
      (contexture-menu--fetch))
    (should-not contexture-menu--changes)))

(ert-deftest contexture-menu-the-present-value-is-the-default ()
  (dolist (contexture-add-to (list 'buffer #'ignore (lambda () "x")))
    (cl-letf (((symbol-function 'completing-read) (lambda (&rest asked) (nth 6 asked))))
      (should (eq (contexture-menu--choose "To: " 'contexture-add-to) contexture-add-to)))))

(defun contexture-menu-tests--set (command text)
  "Answer TEXT to what COMMAND, an option of the menu, asks; return its words."
  (let ((option (get command 'transient--suffix)))
    (cl-letf (((symbol-function 'completing-read) (lambda (&rest _) text))
              ((symbol-function 'read-string) (lambda (&rest _) text)))
      (transient-infix-set option (funcall (oref option reader) nil nil nil)))
    (substring-no-properties (transient-format-value option))))

(ert-deftest contexture-menu-sets-options ()
  (let ((contexture-add-to 'project)
        (contexture-limit nil))
    (should (equal (contexture-menu-tests--set 'contexture-menu-add-to "buffer") "buffer"))
    (should (eq contexture-add-to 'buffer))
    (should (equal (contexture-menu-tests--set 'contexture-menu-limit "8000") "8000"))
    (should (eql contexture-limit 8000))
    (contexture-test-user-error "number of tokens"
      (contexture-menu-tests--set 'contexture-menu-limit "much"))
    (should (equal (contexture-menu-tests--set 'contexture-menu-limit " ") "none"))
    (should-not contexture-limit))
  (let ((contexture-model nil)
        (contexture-format 'markdown))
    (should (equal (contexture-menu-tests--set 'contexture-menu-model " large ") "large"))
    (should (equal contexture-model "large"))
    (should (equal (contexture-menu-tests--set 'contexture-menu-model "") "default"))
    (should-not contexture-model)
    (should (equal (contexture-menu-tests--set 'contexture-menu-format "org") "org"))
    (should (equal (contexture-menu-tests--set 'contexture-menu-format "") "org"))
    (should (eq contexture-format 'org))))

(ert-deftest contexture-menu-says-what-the-marks-will-do ()
  (contexture-menu-tests--in-buffer
    (should (equal (contexture-menu--marks) "show marks"))
    (contexture-mode)
    (should (equal (contexture-menu--marks) "hide marks"))
    (contexture-mode -1)))

(ert-deftest contexture-menu-says-what-undo-and-redo-will-do ()
  (contexture-menu-tests--in-buffer
    (let ((contexture-menu--changes nil)
          (contexture-menu--patience 10)
          (addition "an addition of.*/a\\.txt:1\\'"))
      (should (equal (contexture-menu--undo) "undo"))
      (contexture-add-file buffer-file-name 1 1)
      (contexture-test-only-item)
      (contexture-menu--fetch)
      (should (string-match-p (concat "\\`undo: " addition) (contexture-menu--undo)))
      (should (equal (contexture-menu--redo) "redo"))
      (contexture-undo)
      (contexture-menu--fetch)
      (should (string-match-p (concat "\\`redo: " addition) (contexture-menu--redo)))
      (should (equal (contexture-menu--undo) "undo")))))

(ert-deftest contexture-menu-cuts-the-names-of-changes-to-fit-the-frame ()
  (let ((name "an addition of elisp/contexture-log.el:10-15"))
    (dolist (width '(91 96 200))
      (cl-letf (((symbol-function 'frame-width) (lambda (&rest _) width)))
        (let ((shown (contexture-menu--step-label "undo" name)))
          (should (string-prefix-p "undo: an a" shown))
          (should (string-suffix-p "0-15" shown))
          (should (<= (+ contexture-menu--label-column
                         (- (length shown) (length "undo: ")))
                      width)))))))

;;;; Refreshing

(ert-deftest contexture-refresh-tells-what-became-of-the-files ()
  (contexture-menu-tests--in-buffer
    (contexture-add-file (contexture-test-file "b.txt" "one" "two") 2 2)
    (contexture-test-only-item)         ; it was read
    (contexture-test-message "files of buffer a\\.txt again: nothing has changed$"
      (contexture-refresh))
    (contexture-test-file "b.txt" "zero" "one" "two")
    (contexture-test-message "again: 1 moved within the file$"
      (contexture-refresh))
    (should (equal (contexture-test-metadata (contexture-test-only-item)
                                             :start-line :end-line)
                   '(3 3)))
    (contexture-test-file "b.txt" "zero")
    (contexture-test-message "again: 1 no longer found in the file$"
      (contexture-refresh))
    (delete-file "b.txt")
    (contexture-test-message "again: 1 whose file is gone$"
      (contexture-refresh))))

;;;; Making room

(defun contexture-menu-tests--capacity ()
  "Return the capacity of the current buffer's context."
  (plist-get (cl-find (contexture-adding-context) (contexture-request 'list-managers)
                      :key (lambda (entry) (plist-get entry :manager)) :test #'equal)
             :max-items))

(ert-deftest contexture-set-capacity-makes-room-and-takes-it ()
  (contexture-menu-tests--in-buffer
    (contexture-test-message "^Buffer a\\.txt now holds at most 200 items$"
      (contexture-set-limit 200))
    (should (equal (contexture-menu-tests--capacity) 200))
    (dotimes (line 3)
      (contexture-add-file buffer-file-name (1+ line) (1+ line)))
    (contexture-test-message "at most 2 items; the oldest item left it"
      (contexture-set-limit 2))
    (contexture-undo)
    (should (= (length (contexture-test-items)) 3))))

(ert-deftest contexture-set-capacity-offers-the-present-one ()
  (contexture-menu-tests--in-buffer
    (contexture-request 'configure-manager '(:manager "a.txt" :max-items 7))
    (cl-letf (((symbol-function 'read-number)
               (lambda (prompt &optional default &rest _)
                 (should (equal prompt "Maximum number of items in buffer a.txt (1 to 1000): "))
                 (should (equal default 7))
                 9)))
      (contexture-test-message "at most 9 items"
        (call-interactively #'contexture-set-limit)))))

(ert-deftest contexture-set-capacity-has-limits ()
  (contexture-menu-tests--in-buffer
    (dolist (items '(0 1001 -1 1.5))
      (contexture-test-user-error "from 1 to 1000"
        (contexture-set-limit items)))))

(ert-deftest contexture-a-full-context-names-the-command-that-makes-room ()
  (contexture-menu-tests--in-buffer
    (contexture-set-limit 1)
    (contexture-add-file buffer-file-name 1 1)
    (contexture-request 'update-items '(:pinned t :manager "a.txt" :id "ctx-1"))
    (contexture-test-message
        "^Nothing added to buffer a\\.txt: the context is full; it holds at most 1 (1 \
pinned); unpin or remove some, or raise the limit with M-x contexture-set-limit$"
      (contexture-add-file buffer-file-name 2 2))))

(ert-deftest contexture-a-directory-that-does-not-fit-names-the-way-out ()
  (dolist (case '((80 "; raise the limit to 82 or more with M-x contexture-set-limit, \
or add a listing")
                  (2000 ", and no context can hold more than 1000; add a smaller directory \
or a listing")))
    (pcase-let ((`(,count ,end) case))
      (should (equal (contexture--error-text
                      `( :message "…" :data ( :kind :capacity-full :count ,count
                                              :tokens 9 :capacity 50 :pinned 2)))
                     (format "%d files (9 tokens) do not fit; the context holds at most 50 \
(2 pinned)%s" count end))))))

(provide 'contexture-menu-tests)
;;; contexture-menu-tests.el ends here
